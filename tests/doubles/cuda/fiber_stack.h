/* SPDX-License-Identifier: Apache-2.0
 *
 * fiber_stack: changes between the stacks of fibers. On x86-64 a change takes some nanoseconds.
 * swapcontext() is used elsewhere: it makes a system call for the mask of signals. Under
 * AddressSanitizer it is used, too, since that learns from it which bytes of a stack are free.
 */
#ifndef TEST_DOUBLES_FIBER_STACK_H
#define TEST_DOUBLES_FIBER_STACK_H

#include <stddef.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

typedef struct fiber_stack {
    void *top; /* while another stack is in use */
} fiber_stack;

/** Pushes the registers that calls preserve, stores the top of the stack in @p from, and goes on
 *  where @p to was left. */
void fiber_stack_change(fiber_stack *from, const fiber_stack *to);
__asm__(".pushsection .text\n"
        ".type fiber_stack_change, @function\n"
        "fiber_stack_change:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov (%rsi), %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        "ret\n"
        ".size fiber_stack_change, . - fiber_stack_change\n"
        ".popsection");

/** The first change to the stack calls @p body, which does not return. */
static inline void fiber_stack_new(fiber_stack *s, char *memory, size_t bytes, void (*body)(void))
{
    enum { REGISTERS = 6 };
    void **top = (void **)(void *)(memory + bytes);
    *--top = NULL; /* in place of a return address, so that the stack of `body` is aligned */
    *--top = (void *)body;
    s->top = top - REGISTERS;
}

#else

#include <ucontext.h>

typedef struct fiber_stack {
    ucontext_t context;
} fiber_stack;

static inline void fiber_stack_change(fiber_stack *from, const fiber_stack *to)
{
    swapcontext(&from->context, &to->context);
}

static inline void fiber_stack_new(fiber_stack *s, char *memory, size_t bytes, void (*body)(void))
{
    getcontext(&s->context);
    s->context.uc_stack.ss_sp = memory;
    s->context.uc_stack.ss_size = bytes;
    s->context.uc_link = NULL;
    makecontext(&s->context, body, 0);
}

#endif

#endif
