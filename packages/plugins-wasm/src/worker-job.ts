/** What the daemon's main thread and a plugin's worker say to each other. */
import type { CallLimits } from './wasm/call-instance.ts'

export const WORKER_MARK = 'sluice-plugin-worker'

/** What a worker begins with. */
export interface WorkerStart {
  readonly mark: typeof WORKER_MARK
  readonly memoryMb: number
  readonly fuel: number
  readonly calls: CallLimits
  readonly hasNetwork: boolean
  /** The worker waits for 1 in it while a request of the plugin's is under way. */
  readonly answered: Int32Array
}

/** First the one module the worker serves until it ends, which is read while it starts. */
export type ToWorker = { readonly module: Uint8Array } | { readonly input: string } | { readonly reply: string }

/** `refusal` is a clause that follows "the plugin". */
export type FromWorker = { readonly text: string } | { readonly refusal: string } | { readonly request: string }
