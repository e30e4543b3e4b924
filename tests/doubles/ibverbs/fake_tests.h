/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests of the fake libibverbs: test_NAME() each, in a process of its own. CMake reads this
 * list as well. */
#ifndef TEST_DOUBLES_FAKE_TESTS_H
#define TEST_DOUBLES_FAKE_TESTS_H

#define FAKE_TESTS(TEST) \
    TEST(devices) \
    TEST(infiniband) \
    TEST(limits) \
    TEST(wrong_options) \
    TEST(port_events) \
    TEST(failures) \
    TEST(failure_by_environment) \
    TEST(in_use) \
    TEST(forks) \
    TEST(registrations) \
    TEST(keys) \
    TEST(dmabuf) \
    TEST(required_attributes) \
    TEST(wrong_values) \
    TEST(posting_by_state) \
    TEST(peer_comes_late) \
    TEST(peer_never_comes) \
    TEST(peer_in_error) \
    TEST(peer_goes) \
    TEST(wrong_lids) \
    TEST(wrong_gids) \
    TEST(stranger) \
    TEST(wrong_sequence_numbers) \
    TEST(remote_protection) \
    TEST(local_protection) \
    TEST(pair_protection) \
    TEST(different_mtus) \
    TEST(cut) \
    TEST(cut_for_a_moment) \
    TEST(flushed_receives) \
    TEST(writes_in_order) \
    TEST(pieces_in_any_order) \
    TEST(pairs_at_random) \
    TEST(threads) \
    TEST(any_alignment) \
    TEST(several_elements) \
    TEST(reads) \
    TEST(fence) \
    TEST(inline_data) \
    TEST(late) \
    TEST(places) \
    TEST(lists) \
    TEST(all_signalled) \
    TEST(immediates) \
    TEST(not_ready) \
    TEST(never_ready) \
    TEST(sends) \
    TEST(notification) \
    TEST(solicited) \
    TEST(unacknowledged) \
    TEST(events_go) \
    TEST(overrun) \
    TEST(completions_stay)

#define DECLARE_TEST(name) void test_##name(void);
FAKE_TESTS(DECLARE_TEST)
#undef DECLARE_TEST

#endif
