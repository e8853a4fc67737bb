package store

import "context"

const (
	// pageBytes is about how much of what messages say is held for one page of
	// them. What does not fit is of the next page.
	pageBytes = 16 << 20
	// largestText is about what the texts of one message may take.
	largestText = 4 << 20
)

// fillPage is fill for a page, which ends where its texts become too much to
// hold. It returns how many of the messages it has filled: one at least.
func (s *Store) fillPage(ctx context.Context, ms []Message) (int, error) {
	filled, held := 0, 0
	for filled < len(ms) && held < pageBytes {
		n := portion(ms[filled:])
		if err := s.fill(ctx, ms[filled:filled+n]); err != nil {
			return 0, err
		}
		for _, m := range ms[filled : filled+n] {
			held += m.Content.held()
		}
		filled += n
	}
	return filled, nil
}

// portion is how many of the first messages may be read at once, by what their
// texts take at most: one at least.
func portion(ms []Message) int {
	var bytes int64
	for i, m := range ms {
		if bytes += min(m.Size, largestText); bytes > pageBytes && i > 0 {
			return i
		}
	}
	return len(ms)
}

// held is how many bytes of text the content has, which may be nil.
func (c *Content) held() int {
	switch {
	case c == nil:
		return 0
	case c.Body == nil:
		return len(c.Raw)
	}
	n := len(c.Raw) + len(c.Body.V.Text) + len(c.Body.V.HTML)
	if c.Body.V.Reply != nil {
		n += len(*c.Body.V.Reply)
	}
	return n
}
