/** The agent alone: turns, sessions and tools on the store of a data directory, without server, channels and procedures. */

import { lockDataDirAfterCommands } from '@sluice/store'
import { type EmbeddedTurns, embeddedTurns } from './embedded-turns.ts'
import { type EmbeddingOptions, runtimeOptions } from './embedding-options.ts'
import { type OpenRuntime, openRuntime } from './runtime/open-runtime.ts'
import { resumeTurns } from './start-work.ts'

export interface AgentAlone extends EmbeddedTurns, AsyncDisposable {
  /** Lets running turns end for at most ten seconds, and releases everything. Idempotent. */
  close(): Promise<void>
}

/** Resumes the turns that a crash interrupted. Rejects as `createSluice` does. */
export async function openAgent(options: EmbeddingOptions): Promise<AgentAlone> {
  const { runtime, close } = await openAlone(options)
  return { ...embeddedTurns(runtime), close, [Symbol.asyncDispose]: close }
}

export interface Alone {
  readonly runtime: OpenRuntime
  readonly close: () => Promise<void>
}

const KEEP_ALIVE_MS = 60_000

/** Opens the runtime and starts its approvals and turns; `stop` runs before the runtime closes. */
export async function openAlone(options: EmbeddingOptions, more: { readonly needsModel?: boolean } = {}): Promise<Alone> {
  await using undo = new AsyncDisposableStack()
  const given = runtimeOptions(options)
  const lock = await lockDataDirAfterCommands(given.dataDir)
  undo.defer(() => lock.release())
  const runtime = await openRuntime({ ...given, ...more, lock })
  undo.defer(() => runtime.close())
  await runtime.ownership.start()
  await runtime.approvals.start()
  await resumeTurns(runtime)
  const open = undo.move()
  let closing: Promise<void> | undefined
  return { runtime, close: () => (closing ??= keepAlive(open.disposeAsync())) }
}

/** Timers of the system clock are unreferenced: without this one, the process could end before the work has. */
export async function keepAlive(work: Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, KEEP_ALIVE_MS)
  await work.finally(() => clearInterval(timer))
}
