/** One worker thread that serves one plugin, call after call; ended by force as soon as a call breaks a limit. */
import { Worker } from 'node:worker_threads'
import { AppError, type Clock } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { type FromWorker, type ToWorker, WORKER_MARK, type WorkerStart } from './worker-job.ts'

export type PluginLimits = PluginsConfig['limits']

export interface CallOptions {
  readonly signal: AbortSignal
  /** Answers a request of the plugin's, JSON for JSON; never rejects. Ends soon after `signal` aborts. */
  readonly ask: (request: string, signal: AbortSignal) => Promise<string>
}

interface Call {
  readonly resolve: (text: string) => void
  readonly reject: (error: AppError) => void
  readonly ask: CallOptions['ask']
  readonly untilMs: number
  /** Aborts when the call is over; made when it first asks for something. */
  over: AbortController | undefined
}

/** For what the worker needs besides the plugin's own memory: its code, and texts on their way. */
const HEAP_MB = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, codeRangeSizeMb: 64, stackSizeMb: 4 }
const BYTES_PER_KB = 1024

export class PluginThread {
  readonly plugin: string
  readonly #worker: Worker
  readonly #timeMs: number
  readonly #clock: Clock
  readonly #answered = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  #call: Call | undefined
  #isWatching = false
  #isOver = false

  constructor(url: string, plugin: { readonly name: string; readonly hasNetwork: boolean }, limits: PluginLimits, clock: Clock) {
    const { name, hasNetwork } = plugin
    this.plugin = name
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
    this.#worker = new Worker(new URL(url), {
      workerData,
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: HEAP_MB,
      name: `plugin ${name}`,
    })
    this.#worker.unref()
    this.#worker
      .on('message', (message: FromWorker) => this.#hear(message))
      .on('error', (cause) => this.#fail(new AppError('upstream', 'the plugin took more than its worker has', { cause })))
      .on('exit', () => this.#fail(new AppError('aborted', 'the worker of the plugin has ended')))
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Once, before the first call: the thread starts while the module is read. */
  take(module: Uint8Array): void {
    this.#worker.postMessage({ module } satisfies ToWorker)
  }

  /** One at a time. Throws what is refused or went wrong as `AppError`; the thread may be over then. */
  async call(input: string, { signal, ask }: CallOptions): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const call: Call = { resolve, reject, ask, untilMs: this.#clock.monotonicMs() + this.#timeMs, over: undefined }
    this.#call = call
    const onAbort = () => this.#fail(new AppError('aborted', 'the call of the plugin was aborted'))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted || this.#isOver) onAbort()
    void this.#watch()
    this.#worker.ref()
    try {
      this.#worker.postMessage({ input } satisfies ToWorker)
      return await promise
    } finally {
      this.#call = undefined
      call.over?.abort()
      this.#worker.unref()
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Ends the thread, whatever it does. May be called twice. */
  async end(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await this.#worker.terminate()
  }

  #hear(message: FromWorker): void {
    const call = this.#call
    if (!call) return
    if ('text' in message) call.resolve(message.text)
    else if ('refusal' in message) call.reject(new AppError('upstream', `the plugin ${message.refusal}`))
    else void this.#answer(call, message.request)
  }

  /** One timer for as long as calls follow each other: cheaper than one for each. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return
    this.#isWatching = true
    for (let call = this.#call; call; call = this.#call) {
      const leftMs = call.untilMs - this.#clock.monotonicMs()
      if (leftMs > 0) await this.#clock.sleep(leftMs)
      else break
    }
    this.#isWatching = false
    if (this.#call) this.#fail(new AppError('upstream_timeout', `the plugin took longer than ${this.#timeMs} ms`))
  }

  async #answer(call: Call, request: string): Promise<void> {
    call.over ??= new AbortController()
    const reply = await call.ask(request, call.over.signal)
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
