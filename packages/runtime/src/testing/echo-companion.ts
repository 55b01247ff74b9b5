/** A companion for tests: it sends every message back, and its first message says how it ends. */

export const ECHO_COMPANION_URL = import.meta.url
export const ECHO_COMPANION_MARK = 'sluice-echo-companion'

if (process.argv[2] === ECHO_COMPANION_MARK && process.send) {
  process.once('message', (init: { readonly does: 'echo' | 'ends' | 'stays' }) => {
    process.send?.({ init, env: Object.keys(process.env), args: process.execArgv })
    if (init.does === 'ends') process.exit(3)
    process.on('message', (message) => process.send?.(message as object))
    if (init.does === 'stays') setInterval(() => undefined, 1000)
    process.once('disconnect', () => init.does === 'stays' || process.exit(0))
  })
}
