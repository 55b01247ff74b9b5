/** One worker thread that runs the calls of one plugin. It is terminated as soon as a call breaks a limit. */
import { Worker } from 'node:worker_threads'
import { AppError, type Clock } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { type FromWorker, type ToWorker, WORKER_MARK, type WorkerStart } from './worker-messages.ts'

export type PluginLimits = PluginsConfig['limits']

export interface PluginCall {
  readonly signal: AbortSignal
  /** Sends a request of the plugin and returns the answer, both as JSON. Never rejects. Ends soon after `signal` aborts. */
  readonly sendRequest: (request: string, signal: AbortSignal) => Promise<string>
}

interface ActiveCall {
  readonly resolve: (text: string) => void
  readonly reject: (error: AppError) => void
  readonly sendRequest: PluginCall['sendRequest']
  /** When its time is over, in monotonic milliseconds. */
  readonly deadlineMs: number
  /** Aborts the requests of the plugin when the call ends. Created with its first request. */
  requests: AbortController | undefined
}

/** The limits of the worker without the memory of the plugin: they cover compiled code and texts in transit. */
const HEAP_MB = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, codeRangeSizeMb: 64, stackSizeMb: 4 }
const BYTES_PER_KB = 1024

export class PluginThread {
  readonly plugin: string
  readonly #worker: Worker
  readonly #timeMs: number
  readonly #clock: Clock
  /** Shared with the worker, which blocks on it during a request; see `WorkerStart.answered`. */
  readonly #answered = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  #call: ActiveCall | undefined
  #isTimerRunning = false
  #isEnded = false

  /** `workerUrl` is the module of the worker, and `plugin` the name of the plugin. */
  constructor(workerUrl: string, plugin: string, hasNetwork: boolean, limits: PluginLimits, clock: Clock) {
    this.plugin = plugin
    this.#timeMs = limits.time_ms
    this.#clock = clock
    const workerData: WorkerStart = {
      mark: WORKER_MARK,
      memoryMb: limits.memory_mb,
      fuel: limits.fuel,
      calls: { inputBytesMax: limits.input_kb * BYTES_PER_KB, outputBytesMax: limits.output_kb * BYTES_PER_KB },
      hasNetwork,
      answered: this.#answered,
    }
    this.#worker = new Worker(new URL(workerUrl), {
      workerData,
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: HEAP_MB,
      name: `plugin ${plugin}`,
    })
    this.#worker.unref()
    this.#worker
      .on('message', (message: FromWorker) => this.#onMessage(message))
      .on('error', (cause) => this.#fail(new AppError('upstream', "The plugin exceeded its worker's memory", { cause })))
      .on('exit', () => this.#fail(new AppError('aborted', "The plugin's worker has ended")))
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Call it once, before the first call. The thread starts while the caller still reads the module. */
  load(module: Uint8Array): void {
    this.#worker.postMessage({ module } satisfies ToWorker)
  }

  /** Runs one call; the caller must not start another meanwhile. Throws an `AppError`, after which the thread may have ended. */
  async call(input: string, { signal, sendRequest }: PluginCall): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const deadlineMs = this.#clock.monotonicMs() + this.#timeMs
    const call: ActiveCall = { resolve, reject, sendRequest, deadlineMs, requests: undefined }
    this.#call = call
    const onAbort = () => this.#fail(new AppError('aborted', 'The call of the plugin was aborted'))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted || this.#isEnded) onAbort()
    void this.#watchDeadline()
    this.#worker.ref()
    try {
      this.#worker.postMessage({ input } satisfies ToWorker)
      return await promise
    } finally {
      this.#call = undefined
      call.requests?.abort()
      this.#worker.unref()
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Terminates the thread, also during a call. May be called twice. */
  async end(): Promise<void> {
    if (this.#isEnded) return
    this.#isEnded = true
    await this.#worker.terminate()
  }

  #onMessage(message: FromWorker): void {
    const call = this.#call
    if (!call) return
    if ('text' in message) call.resolve(message.text)
    else if ('refusal' in message) call.reject(new AppError('upstream', `The plugin ${message.refusal}`))
    else void this.#answerRequest(call, message.request)
  }

  /** One timer serves all calls that follow each other, which costs less than a timer for each. */
  async #watchDeadline(): Promise<void> {
    if (this.#isTimerRunning) return
    this.#isTimerRunning = true
    for (let call = this.#call; call; call = this.#call) {
      const leftMs = call.deadlineMs - this.#clock.monotonicMs()
      if (leftMs > 0) await this.#clock.sleep(leftMs)
      else break
    }
    this.#isTimerRunning = false
    if (this.#call) this.#fail(new AppError('upstream_timeout', `The plugin took longer than ${this.#timeMs} ms`))
  }

  /** Sends a request of the plugin and wakes the worker with the answer. */
  async #answerRequest(call: ActiveCall, request: string): Promise<void> {
    call.requests ??= new AbortController()
    const reply = await call.sendRequest(request, call.requests.signal)
    if (this.#call !== call) return
    this.#worker.postMessage({ reply } satisfies ToWorker)
    Atomics.store(this.#answered, 0, 1)
    Atomics.notify(this.#answered, 0)
  }

  #fail(error: AppError): void {
    this.#call?.reject(error)
    void this.end()
  }
}
