/** `sluice sop run`: starts a procedure by hand; the daemon works on it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, SOP_ENDED, type SopRun, type SopStore } from '@sluice/sdk'
import { shownRun } from '@sluice/sop/shown'
import { cliUser } from '../cli-user.ts'
import type { CliContext } from '../context.ts'
import { probeDaemon } from '../probe-daemon.ts'
import { readInput } from '../read-input.ts'
import { openEngine } from '../sops/engine.ts'
import { progressLines } from '../sops/run-lines.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

const PAYLOAD_BYTES_MAX = 64 * 1024
const WAIT_SECS_MAX = 86_400
const POLL_MS = 200

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store, clock }) => {
    const { out, json, options, args, dataDir } = context
    const waitMs = typeof options.wait === 'string' ? wholeNumber('--wait', options.wait, 0, WAIT_SECS_MAX) * 1000 : 0
    const engine = await openEngine(context, store)
    const runId = await engine.run(args[0] ?? '', { payload: await payloadOf(context), atMs: clock.nowMs(), by: cliUser() })
    const daemon = await probeDaemon(dataDir)
    if (!daemon.running) out.warn('no daemon is running: the run is kept and goes on when one starts')
    if (!json) out.print(`run ${runId}`)
    const followed = await follow(store.sops, runId, { waitMs, signal: context.interrupted(), tell: json ? () => {} : out.print })
    if (json) out.json(followed ? shownRun(followed) : { run_id: runId })
    return followed?.status === 'failed' || followed?.status === 'cancelled' ? 1 : 0
  })

/** `-` reads standard input. */
async function payloadOf({ options, stdin }: CliContext): Promise<string | null> {
  const { payload } = options
  if (typeof payload !== 'string') return null
  const text = payload === '-' ? await readInput(stdin, PAYLOAD_BYTES_MAX) : payload
  if (Buffer.byteLength(text) > PAYLOAD_BYTES_MAX) throw new AppError('too_large', `a payload has at most ${PAYLOAD_BYTES_MAX} bytes`)
  return text
}

interface Following {
  readonly waitMs: number
  readonly signal: AbortSignal
  tell(line: string): void
}

/** The run as it is once it is over, or the time is. */
async function follow(sops: SopStore, runId: string, { waitMs, signal, tell }: Following): Promise<SopRun | undefined> {
  const endMs = performance.now() + waitMs
  const told = new Set<string>()
  for (;;) {
    const current = await sops.get(runId)
    for (const line of current ? progressLines(current) : []) {
      if (!told.has(line)) tell(line)
      told.add(line)
    }
    if (!current || SOP_ENDED.includes(current.status) || performance.now() >= endMs || signal.aborted) return current
    await sleep(Math.min(POLL_MS, Math.max(1, endMs - performance.now())), undefined, { signal }).catch(() => {})
  }
}
