/**
 * The code of the PDF worker. The daemon imports this module for its URL, and the worker thread runs it. Every import of it
 * is dynamic, so that a bundler emits it as a file of its own.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { extractText } from './extract-text.ts'
import type { PdfJob } from './pdf-job.ts'

export const PDF_WORKER_URL = import.meta.url
/** Marks the threads that serve PDF jobs; other threads may import this module too. */
export const PDF_WORKER_MARK = 'sluice-pdf-worker'

if (!isMainThread && parentPort && workerData === PDF_WORKER_MARK) {
  const port = parentPort
  const { getDocumentProxy } = await import('unpdf')
  port.on('message', async (job: PdfJob) => port.postMessage(await extractText(job, getDocumentProxy)))
}
