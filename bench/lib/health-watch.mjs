// Watches how long /health of a server waits, and how much of that is the server's own doing. On a loaded machine a request also waits
// because other processes have the processors: the kernel counts how long each thread was ready to run and did not, and this wait of the
// server's main thread and of the watching thread is subtracted. The remaining time is work, disk and locks of the server.
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const EVERY_MS = 5

/** Returns the milliseconds that a thread has waited for a processor. */
const waitedMs = (thread) => Number(readFileSync(`/proc/${thread}/schedstat`, 'utf8').split(' ')[1]) / 1e6

/** Starts to watch in a thread of its own, so that the work of the caller delays no answer. `during` watches while a promise is pending. */
export async function watchHealth({ port, pid }) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port, pid } })
  let asked
  worker.on('message', (seen) => asked.resolve(seen))
  worker.on('error', (error) => asked.reject(error))
  const answer = () => {
    asked = Promise.withResolvers()
    return asked.promise
  }
  const ask = (word) => {
    const answered = answer()
    worker.postMessage(word)
    return answered
  }
  await answer()
  return {
    /** Resolves to the longest time of an answer meanwhile, and the longest that is the server's own. */
    async during(work) {
      await ask('begin')
      await work()
      return ask('end')
    },
    stop: () => worker.terminate(),
  }
}

async function main({ port, pid }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const health = () =>
    new Promise((resolve, reject) => {
      const request = get({ port, host: '127.0.0.1', path: '/health', agent }, (response) => response.resume().once('end', resolve))
      request.once('error', reject)
    })
  let longest
  parentPort.on('message', (word) => {
    if (word === 'begin') longest = { healthMs: 0, ownMs: 0 }
    parentPort.postMessage(longest)
  })
  parentPort.postMessage('ready')
  for (;;) {
    const [start, ofServer, ofWatch] = [performance.now(), waitedMs(`${pid}/task/${pid}`), waitedMs('thread-self')]
    await health()
    const tookMs = performance.now() - start
    const waited = waitedMs(`${pid}/task/${pid}`) - ofServer + (waitedMs('thread-self') - ofWatch)
    if (longest) {
      longest.healthMs = Math.max(longest.healthMs, tookMs)
      longest.ownMs = Math.max(longest.ownMs, tookMs - waited)
    }
    await sleep(EVERY_MS)
  }
}

if (!isMainThread) await main(workerData)
