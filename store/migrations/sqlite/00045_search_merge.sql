-- +goose Up
-- FTS5 merges nothing inside the transactions that index or delete messages:
-- one such merge held up everything for seconds. The store merges in short
-- steps of its own (store/search_merge.go). crisismerge stays as a bound on the
-- number of segments, should those steps fail for a long time.
INSERT INTO search_index (search_index, rank) VALUES ('automerge', 0);
INSERT INTO search_index (search_index, rank) VALUES ('crisismerge', 256);
INSERT INTO search_index (search_index, rank) VALUES ('deletemerge', 5);
