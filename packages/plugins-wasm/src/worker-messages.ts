/** The messages between the main thread and a plugin's worker. */
import type { CallLimits } from './wasm/call-instance.ts'

/** Marks the threads that serve plugins; other threads may import the worker's module too. */
export const WORKER_MARK = 'sluice-plugin-worker'

/** The `workerData` of a plugin's worker. */
export interface WorkerStart {
  readonly mark: typeof WORKER_MARK
  readonly memoryMb: number
  readonly fuel: number
  readonly calls: CallLimits
  readonly hasNetwork: boolean
  /** Shared memory of one number. The worker sets it to 0 when it sends a request, and blocks until it is 1. */
  readonly answered: Int32Array
}

/** The first message is the only module that the worker ever runs. */
export type ToWorker = { readonly module: Uint8Array } | { readonly input: string } | { readonly reply: string }

/** `refusal` is a clause that follows "the plugin". */
export type FromWorker = { readonly text: string } | { readonly refusal: string } | { readonly request: string }
