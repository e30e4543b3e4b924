#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the tests find: makes mutants of the product, counts those that a test notices.

A mutant is one change of one expression: a condition is negated, a comparison moved by one, "and"
and "or" or plus and minus are exchanged, or a constant is one more. All mutants are built at once:
each stands beside the original in the same expression, and the variable RING_MUTANT chooses one at
run time. A first run of each test records which mutants it reaches; then each mutant meets the
tests that reach it, the shortest first, until one fails, twice.

The same seed chooses the same mutants of the same sources, so that two suites can be compared:
--tests takes the tests (all that lies in tests/) from another tree.

    python3 tests/mutants/mutants.py . build-mutants --count 200 --seed 1
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

SWITCH = '''\
extern char *getenv(const char *);
extern int open(const char *, int, ...), close(int), atoi(const char *);
extern int snprintf(char *, __SIZE_TYPE__, const char *, ...);
__attribute__((unused, no_sanitize("thread"))) static int ring_mutant(int number)
{
    static int chosen = -1;
    static const char *reached;
    static char seen[MUTANTS];
    if (chosen < 0) {
        const char *text = getenv("RING_MUTANT");
        reached = getenv("RING_MUTANTS_REACHED");
        chosen = text ? atoi(text) : 0;
    }
    if (reached && !seen[number]) {
        char path[512];
        seen[number] = 1;
        snprintf(path, sizeof path, "%s/%d", reached, number);
        int file = open(path, 0101, 0600); /* O_WRONLY | O_CREAT */
        if (file >= 0)
            close(file);
    }
    return number == chosen;
}
'''
EXCHANGES = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||',
             '||': '&&', ' + ': ' - ', ' - ': ' + '}
OPERATOR = re.compile(r'(?<=[\w)\]] )(<=|>=|==|!=|&&|\|\||<|>)(?= )'
                      r'|(?<=[\w)\]])( \+ | - )(?=[\w(])')
CONSTANT = re.compile(r'(?<![\w.])(?:0|[1-9]\d*)(?![\w.])')
PLACES = re.compile(r'^[ ]{4,}(?:(?:\} else )?(?P<test>if|while) \('
                    r'|(?P<value>return |[\w.>\[\]-]+ [-+]?= ))', re.M)

Mutant = collections.namedtuple('Mutant', 'number path line begin end change text')


def closing(text, at):
    """The place behind the bracket that closes the one before `at`; None beside strings."""
    depth = 1
    while depth:
        if at >= len(text) or text[at] in '"\'{;':
            return None
        depth += {'(': 1, ')': -1}.get(text[at], 0)
        at += 1
    return at


def expressions(text):
    """(begin, end, whether it is a condition) of the expressions of statements."""
    for place in PLACES.finditer(text):
        begin = place.end()
        if place['test']:
            end = closing(text, begin)
            end = end and end - 1
        else:
            end = text.find(';', begin)
        expression = text[begin:end] if end else ''
        if expression and not re.search(r'["\'{}#]|/\*', expression):
            yield begin, end, bool(place['test'])


def changes(expression, is_condition):
    """(what changes, the new expression)"""
    if is_condition:
        yield 'negate', f'!({expression})'
    for found in OPERATOR.finditer(expression):
        new = EXCHANGES[found[0]]
        yield (f'{found[0].strip()} -> {new.strip()}',
               expression[:found.start()] + new + expression[found.end():])
    for found in CONSTANT.finditer(expression):
        new = str(int(found[0], 0) + 1)
        yield f'{found[0]} -> {new}', expression[:found.start()] + new + expression[found.end():]


def choose(tree, rooms, count, seed):
    """`count` mutants of the rooms' sources, one expression of each at most."""
    found = []
    listed = subprocess.check_output(['git', '-C', tree, 'ls-files', *rooms], text=True).split()
    for path in sorted(f for f in listed if f.endswith('.c')):
        text = open(os.path.join(tree, path), encoding='utf8').read()
        for begin, end, is_condition in expressions(text):
            for change, new in changes(text[begin:end], is_condition):
                found.append((path, text.count('\n', 0, begin) + 1, begin, end, change, new))
    random.Random(seed).shuffle(found)
    chosen, taken = [], set()
    for one in found:
        if len(chosen) < count and (one[0], one[2]) not in taken:
            taken.add((one[0], one[2]))
            chosen.append(Mutant(len(chosen) + 1, *one))
    return chosen


def write(tree, folder, paths, mutants):
    """Puts the mutants into the copies of their files; the other paths get the original text."""
    for path in paths:
        text = open(os.path.join(tree, path), encoding='utf8').read()
        for m in sorted((m for m in mutants if m.path == path), key=lambda m: -m.begin):
            old = text[m.begin:m.end]
            new = ' '.join(m.text.split()) + '\n' * m.text.count('\n')
            both = f'ring_mutant({m.number}) ? ({new}) : ({" ".join(old.split())})'
            text = text[:m.begin] + both + text[m.end:]
        with open(os.path.join(folder, path), 'w', encoding='utf8') as out:
            out.write(text)


def stands_at(mutant, path, line):
    last = mutant.line + mutant.text.count('\n')
    return path.endswith(mutant.path) and mutant.line <= int(line) <= last


def build(tree, folder, mutants, options):
    """Builds; leaves out the mutants that do not compile. Returns those that do."""
    switch = os.path.join(folder, 'mutants.h')
    with open(switch, 'w', encoding='utf8') as out:
        out.write(f'#define MUTANTS {max(m.number for m in mutants) + 1}\n{SWITCH}')
    subprocess.check_call(['cmake', '-S', folder, '-B', f'{folder}/build', '-G', 'Ninja',
                           '-DCMAKE_BUILD_TYPE=Debug', '-DRING_CUDA=OFF',
                           f'-DCMAKE_C_FLAGS=-O1 -w -include {switch}', *options],
                          stdout=subprocess.DEVNULL)
    paths = {m.path for m in mutants}
    while True:
        write(tree, folder, paths, mutants)
        made = subprocess.run(['ninja', '-C', f'{folder}/build', '-k0'], capture_output=True,
                              text=True)
        if made.returncode == 0:
            return mutants
        wrong = re.findall(r'([\w./-]+\.c):(\d+):\d+: error', made.stdout)
        left = [m for m in mutants if not any(stands_at(m, *place) for place in wrong)]
        if len(left) == len(mutants):
            sys.exit(made.stdout[-4000:])
        mutants = left


def run(test, seconds, **variables):
    """Whether a test passes, and how long it took."""
    begun = time.time()
    child = subprocess.Popen(test['command'], cwd=test['folder'],
                             env={**os.environ, **test['env'], **variables},
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        status = child.wait(seconds)
    except subprocess.TimeoutExpired:
        status = 'too long'
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
    passes = status == 77 or (status == 0) != test['fails']
    return passes and status != 'too long', time.time() - begun


def list_tests(folder, pattern):
    listed = json.loads(subprocess.check_output(['ctest', '--test-dir', f'{folder}/build',
                                                 '--show-only=json-v1', '-R', pattern, '-LE',
                                                 'full']))
    tests = []
    for test in listed['tests']:
        properties = {p['name']: p['value'] for p in test.get('properties', [])}
        if 'command' in test:
            tests.append({'name': test['name'], 'command': test['command'],
                          'folder': properties.get('WORKING_DIRECTORY', folder),
                          'fails': properties.get('WILL_FAIL', False),
                          'env': dict(e.split('=', 1) for e in properties.get('ENVIRONMENT', []))})
    return tests


def record(test, folder):
    """Runs a test without a mutant; it gets its seconds and the mutants that it reaches."""
    reached = os.path.join(folder, 'reached', test['name'])
    shutil.rmtree(reached, ignore_errors=True)
    os.makedirs(reached)
    passes, test['seconds'] = run(test, 600, RING_MUTANTS_REACHED=reached)
    test['reached'] = {int(n) for n in os.listdir(reached)} if passes else set()
    if not passes:
        print(f'left out, fails without a mutant: {test["name"]}', flush=True)


def judge(mutant, tests, most):
    """The first test that fails with the mutant; None: those that fit into `most` seconds pass."""
    spent = 0
    reaching = [t for t in tests if mutant.number in t['reached']]
    for test in sorted(reaching, key=lambda t: t['seconds']):
        if spent > most:
            return None
        limit, number = 3 * test['seconds'] + 10, str(mutant.number)
        passes, seconds = run(test, limit, RING_MUTANT=number)
        if not passes and not run(test, limit, RING_MUTANT=number)[0]:
            return test['name']
        spent += seconds
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tree', help='a checkout')
    parser.add_argument('folder', help='where to build; is made anew')
    parser.add_argument('--rooms', nargs='+', default=['libring', 'transport', 'kernels', 'train'],
                        help='folders of the product that are changed')
    parser.add_argument('--within', default='', help='judge those of this folder alone')
    parser.add_argument('--tests', help='another checkout, whose tests run instead')
    parser.add_argument('--only', default='.', help='a pattern of names of tests')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--most', type=float, default=60,
                        help='seconds of tests that a mutant has to survive')
    parser.add_argument('options', nargs='*', help='of cmake, behind --')
    args = parser.parse_intermixed_args()
    folder = os.path.abspath(args.folder)
    if subprocess.check_output(['git', '-C', args.tree, 'status', '--porcelain', '-uno']):
        sys.exit(f'{args.tree} has changes that are not committed')
    mutants = [m for m in choose(args.tree, args.rooms, args.count, args.seed)
               if m.path.startswith(args.within)]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for tree, part in (args.tree, '.'), *([(args.tests, 'tests')] if args.tests else []):
        shutil.rmtree(os.path.join(folder, 'tests'), ignore_errors=True)
        subprocess.check_call(f'git -C {tree} archive HEAD {part} | tar -x -C {folder}',
                              shell=True)
    mutants = build(args.tree, folder, mutants, args.options)
    tests = list_tests(folder, args.only)
    print(f'{len(mutants)} mutants, {len(tests)} tests', flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda test: record(test, folder), tests))
        reached = set().union(*(t['reached'] for t in tests))
        killers = list(pool.map(
            lambda m: tell(m, judge(m, tests, args.most), m.number in reached), mutants))
    print(f'{sum(k is not None for k in killers)} of {len(mutants)} mutants found; '
          f'{sum(m.number not in reached for m in mutants)} reached by no test')


def tell(mutant, killer, is_reached):
    verdict = f'found by {killer}' if killer else 'SURVIVES' if is_reached else 'not reached'
    print(f'{mutant.number:4} {mutant.path}:{mutant.line} {mutant.change}: {verdict}', flush=True)
    return killer


if __name__ == '__main__':
    main()
