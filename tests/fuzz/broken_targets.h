/* SPDX-License-Identifier: Apache-2.0
 * Parsers that are wrong, each in its own way: broken.c. CMakeLists.txt reads this list. */
TARGET(crashes)
TARGET(reads_on)
TARGET(hangs)
TARGET(ends_the_program)
TARGET(accepts_too_much)
TARGET(refuses_too_much)
TARGET(gives_no_reason)
TARGET(gives_orders)
TARGET(gives_no_status)
TARGET(loses_memory)
