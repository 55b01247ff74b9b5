/**
 * The code of a plugin's worker. The daemon imports this module for its URL, and the worker thread runs it. Every import of it is
 * dynamic, so that a bundler emits it as a file of its own.
 */
import { isMainThread, type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { type Compiled, callInstance, compileModule, importsFor } from './wasm/call-instance.ts'
import { ModuleError } from './wasm/module-error.ts'
import { type FromWorker, type ToWorker, WORKER_MARK, type WorkerStart } from './worker-messages.ts'

export const PLUGIN_WORKER_URL = import.meta.url

/** Compiles the module from the first message, then answers calls. */
function serve(port: MessagePort, { memoryMb, fuel, hasNetwork, answered, calls }: WorkerStart): void {
  const post = (message: FromWorker) => port.postMessage(message)
  /** Blocks the worker until the main thread has sent the answer, because a WebAssembly import cannot wait asynchronously. */
  const sendRequest = (request: string): string => {
    Atomics.store(answered, 0, 0)
    post({ request })
    Atomics.wait(answered, 0, 0)
    const { message } = receiveMessageOnPort(port) as { message: { reply: string } }
    return message.reply
  }
  const compileOrRefuse = (module: Uint8Array): Compiled | ModuleError => {
    try {
      return compileModule(module, { memoryMb, fuel, imports: importsFor(hasNetwork) })
    } catch (error) {
      return asModuleError(error)
    }
  }
  let compiled: Compiled | ModuleError = new ModuleError('has no module')
  port.on('message', (message: ToWorker) => {
    if ('module' in message) compiled = compileOrRefuse(message.module)
    if (!('input' in message)) return
    try {
      if (compiled instanceof ModuleError) throw compiled
      post({ text: callInstance(compiled, message.input, calls, hasNetwork ? sendRequest : undefined) })
    } catch (error) {
      post({ refusal: asModuleError(error).message })
    }
  })
}

const asModuleError = (error: unknown): ModuleError =>
  error instanceof ModuleError ? error : new ModuleError('failed because of an internal error')

if (!isMainThread && parentPort && (workerData as Partial<WorkerStart> | null)?.mark === WORKER_MARK) serve(parentPort, workerData)
