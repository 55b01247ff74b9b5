// Preloaded into a daemon: its wall clock is ahead of the machine's by CLOCK_OFFSET_MS, as after a wrong setting. The monotonic clock,
// timers and files use the machine's clock.
const offsetMs = Number(process.env.CLOCK_OFFSET_MS)
const Real = Date
globalThis.Date = class extends Real {
  constructor(...args) {
    if (args.length === 0) super(Real.now() + offsetMs)
    else super(...args)
  }
  static now() {
    return Real.now() + offsetMs
  }
}
