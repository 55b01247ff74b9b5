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

/** For what the worker needs besides the plugin's own memory: its code, and texts on their way. */
const HEAP_MB = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, codeRangeSizeMb: 64, stackSizeMb: 4 }
const BYTES_PER_KB = 1024

export class PluginThread {
  readonly plugin: string
  readonly #worker: Worker
  readonly #limits: PluginLimits
  readonly #clock: Clock
  readonly #answered = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  #isOver = false

  constructor(
    url: string,
    plugin: { readonly name: string; readonly hasNetwork: boolean },
    module: Uint8Array,
    limits: PluginLimits,
    clock: Clock,
  ) {
    this.plugin = plugin.name
    this.#limits = limits
    this.#clock = clock
    const workerData: WorkerStart = {
      mark: WORKER_MARK,
      module,
      memoryMb: limits.memory_mb,
      fuel: limits.fuel,
      calls: { inputBytesMax: limits.input_kb * BYTES_PER_KB, outputBytesMax: limits.output_kb * BYTES_PER_KB },
      hasNetwork: plugin.hasNetwork,
      answered: this.#answered,
    }
    this.#worker = new Worker(new URL(url), {
      workerData,
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: HEAP_MB,
      name: `plugin ${plugin.name}`,
    })
    this.#worker.unref()
    // between calls nobody else listens, and an error that nobody hears ends the daemon
    this.#worker.on('error', () => void this.end())
    this.#worker.on('exit', () => void this.end())
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** One at a time. Throws what is refused or went wrong as `AppError`; the thread may be over then. */
  async call(input: string, { signal, ask }: CallOptions): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const over = new AbortController()
    const fail = (error: AppError) => {
      reject(error)
      void this.end()
    }
    const onMessage = (message: FromWorker) => {
      if ('text' in message) resolve(message.text)
      else if ('refusal' in message) reject(new AppError('upstream', `the plugin ${message.refusal}`))
      else void ask(message.request, over.signal).then((reply) => over.signal.aborted || this.#reply(reply))
    }
    const onError = (error: unknown) => fail(new AppError('upstream', 'the plugin took more than its worker has', { cause: error }))
    const onExit = () => fail(new AppError('unavailable', 'the worker of the plugin has ended'))
    const onAbort = () => fail(new AppError('aborted', 'the call of the plugin was aborted'))
    this.#worker.on('message', onMessage).on('error', onError).on('exit', onExit)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    const { time_ms } = this.#limits
    void this.#clock.sleep(time_ms, over.signal).then(() => {
      if (!over.signal.aborted) fail(new AppError('upstream_timeout', `the plugin took longer than ${time_ms} ms`))
    })
    this.#worker.ref()
    try {
      this.#worker.postMessage({ input } satisfies ToWorker)
      return await promise
    } finally {
      over.abort()
      this.#worker.unref()
      this.#worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Ends the thread, whatever it does. May be called twice. */
  async end(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    await this.#worker.terminate()
  }

  #reply(reply: string): void {
    if (this.#isOver) return
    this.#worker.postMessage({ reply } satisfies ToWorker)
    Atomics.store(this.#answered, 0, 1)
    Atomics.notify(this.#answered, 0)
  }
}
