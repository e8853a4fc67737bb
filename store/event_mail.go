package store

import "context"

// MessagesOf returns messages with their content, by their numbers, unless their
// inbox is deleted. It leaves out what would be too much to hold at once.
func (s *Store) MessagesOf(ctx context.Context, seqs []int64) (map[int64]Message, error) {
	ms, err := s.messagesBySeq(ctx, seqs, &MessageFilter{})
	if err != nil {
		return nil, err
	}
	n, err := s.fillPage(ctx, ms)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]Message, n)
	for _, m := range ms[:n] {
		found[m.Seq] = m
	}
	return found, nil
}

// EmailsOf is MessagesOf for emails.
func (s *Store) EmailsOf(ctx context.Context, seqs []int64) (map[int64]Email, error) {
	es, err := s.emailsBySeq(ctx, seqs)
	if err != nil {
		return nil, err
	}
	ms := make([]Message, len(es))
	for i := range es {
		ms[i] = es[i].Message
	}
	n, err := s.fillPage(ctx, ms)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]Email, n)
	for i, e := range es[:n] {
		e.Message = ms[i]
		e.show()
		found[e.Seq] = e
	}
	return found, nil
}
