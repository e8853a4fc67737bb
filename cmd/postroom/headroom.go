package main

// gcHeadroom is counted by the garbage collector as live memory, and is never
// touched, so that the system gives no pages for it. The service holds so little
// that the collector, which runs whenever the heap has doubled, would do so all
// the time while mail comes in; that took 7 % of the CPU. With it the heap may
// grow by 16 MiB more between two collections, however large it is; a larger
// GOGC would let a heap that is already large grow by a multiple.
const gcHeadroom = 16 << 20

func newHeadroom() []byte { return make([]byte, gcHeadroom) }
