/**
 * The code of the thread that reads pages. The daemon imports this module for its URL, and the thread runs it. Every import of it is dynamic,
 * so that a bundler emits it as a file of its own.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { articleText, type PageSource } from './article-text.ts'

export const PAGE_WORKER_URL = import.meta.url
/** Marks the threads that read pages; other threads may import this module too. */
export const PAGE_WORKER_MARK = 'sluice-page-worker'

if (!isMainThread && parentPort && workerData === PAGE_WORKER_MARK) {
  const port = parentPort
  port.on('message', async (page: PageSource) => port.postMessage(await articleText(page)))
}
