/** A line whose code is loaded with its first use: most machines have no board. */
import type { BoardLine } from './board-line.ts'

const NOTHING: ReadonlySet<string> = new Set()

export function lazyLine(load: () => Promise<BoardLine>): BoardLine {
  let loading: Promise<BoardLine> | undefined
  let closed = false
  const line = (): Promise<BoardLine> => {
    loading ??= load()
    return loading
  }
  return {
    capabilities: async (signal) => (await line()).capabilities(signal),
    read: async (pin, signal) => (await line()).read(pin, signal),
    write: async (pin, value, signal) => (await line()).write(pin, value, signal),
    withPort: async (signal, work) => (await line()).withPort(signal, work),
    listen(wanted) {
      // Nothing is open that would have to be closed.
      if (wanted.size === 0 && !loading) return
      void line().then((loaded) => loaded.listen(closed ? NOTHING : wanted))
    },
    drop: async () => (await loading)?.drop(),
    async close() {
      closed = true
      await (await loading)?.close()
    },
  }
}
