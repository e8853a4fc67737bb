package main

// gcHeadroom counts as live memory for the garbage collector but is never
// touched, so that the system allocates no pages for it. The service's heap is so
// small that the collector, which runs when the heap has doubled, would run
// constantly under load; that took 7 % of the CPU. The headroom lets any heap
// grow by 16 MiB more between collections. A larger GOGC would let a large heap
// grow by a multiple of its size.
const gcHeadroom = 16 << 20

func newHeadroom() []byte { return make([]byte, gcHeadroom) }
