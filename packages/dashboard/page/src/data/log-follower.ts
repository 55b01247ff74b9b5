/** Follows the log of the gateway by one open request, and begins again after a break where it was. */
import { useEffect, useState } from 'preact/hooks'
import { type ApiError, answered, api, type Got } from './api.ts'
import { linesOf } from './json-lines.ts'

export type LogLine = Got<'/api/logs'>['lines'][number]
const LINES_MAX = 2000
/** Older lines are dropped in one go when there are so many more. */
const SPARE_MAX = 500
const DRAW_EVERY_MS = 250
const WAIT_MS_MIN = 400
const WAIT_MS_MAX = 5000

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

interface Followed {
  readonly data: readonly LogLine[] | undefined
  readonly error: unknown
  refetch(): void
}

/** Returns the last lines of a level and above, oldest first, at most 2,000. While it is paused, lines that are written are not lost. */
export function useLogLines(level: LogLevel, isPaused: boolean): Followed {
  const [lines, setLines] = useState<readonly LogLine[] | undefined>()
  const [error, setError] = useState<unknown>()
  const [round, setRound] = useState(0)
  useEffect(() => {
    if (isPaused) return undefined
    const ended = new AbortController()
    let known: LogLine[] = []
    let run = ''
    let timer: number | undefined
    const draw = () => {
      timer = undefined
      if (known.length > LINES_MAX + SPARE_MAX) known = known.slice(-LINES_MAX)
      setLines(known.slice(-LINES_MAX))
    }
    const add = (line: LogLine) => {
      known.push(line)
      timer ??= window.setTimeout(draw, DRAW_EVERY_MS)
    }
    const { signal } = ended
    /** Another run of the daemon counts its lines from 1 again. */
    const catchUp = async (): Promise<number> => {
      const page = await answered(api.GET('/api/logs', { params: { query: { level, limit: '1000' } }, signal }))
      const last = page.run === run ? (known.at(-1)?.number ?? 0) : 0
      if (page.run !== run && run !== '') known = []
      run = page.run
      for (const line of page.lines) if (line.number > last) add(line)
      draw()
      setError(undefined)
      return page.lines.at(-1)?.number ?? 0
    }
    const follow = async (after: number): Promise<void> => {
      const { data } = await api.GET('/api/logs/follow', { params: { query: { level, after: String(after) } }, signal, parseAs: 'stream' })
      if (data) for await (const line of linesOf<LogLine>(data as unknown as ReadableStream<Uint8Array>)) add(line)
    }
    const keepFollowing = async () => {
      for (let waitMs = WAIT_MS_MIN; !signal.aborted; waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)) {
        try {
          const after = await catchUp()
          waitMs = WAIT_MS_MIN
          await follow(after)
        } catch (failure) {
          if (signal.aborted) return
          if (known.length === 0) setError(failure as ApiError)
        }
        await new Promise((done) => window.setTimeout(done, waitMs))
      }
    }
    void keepFollowing()
    return () => {
      ended.abort()
      window.clearTimeout(timer)
    }
  }, [level, isPaused, round])
  return { data: lines, error, refetch: () => setRound(round + 1) }
}
