/**
 * A plugin's worker: a module the daemon imports to learn where it is, and a thread runs to answer calls. It is only ever
 * imported dynamically, so that a bundler gives it a file of its own.
 */
import { isMainThread, type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { type Compiled, callInstance, compile, importsFor } from './wasm/call-instance.ts'
import { ModuleError } from './wasm/module-error.ts'
import { type FromWorker, type ToWorker, WORKER_MARK, type WorkerStart } from './worker-job.ts'

export const PLUGIN_WORKER_URL = import.meta.url

function serve(port: MessagePort, start: WorkerStart): void {
  const { memoryMb, fuel, hasNetwork, answered, calls } = start
  const say = (message: FromWorker) => port.postMessage(message)
  const ask = (request: string): string => {
    Atomics.store(answered, 0, 0)
    say({ request })
    Atomics.wait(answered, 0, 0)
    const { message } = receiveMessageOnPort(port) as { message: { reply: string } }
    return message.reply
  }
  const compiledFrom = (module: Uint8Array): Compiled | ModuleError => {
    try {
      return compile(module, { memoryMb, fuel, imports: importsFor(hasNetwork) })
    } catch (error) {
      return asModuleError(error)
    }
  }
  let compiled: Compiled | ModuleError = new ModuleError('has no module')
  port.on('message', (message: ToWorker) => {
    if ('module' in message) compiled = compiledFrom(message.module)
    if (!('input' in message)) return
    try {
      if (compiled instanceof ModuleError) throw compiled
      say({ text: callInstance(compiled, message.input, calls, hasNetwork ? ask : undefined) })
    } catch (error) {
      say({ refusal: asModuleError(error).message })
    }
  })
}

const asModuleError = (error: unknown): ModuleError =>
  error instanceof ModuleError ? error : new ModuleError('failed by a fault of its host')

if (!isMainThread && parentPort && (workerData as Partial<WorkerStart> | null)?.mark === WORKER_MARK) serve(parentPort, workerData)
