/**
 * The PDF worker: a module the daemon imports to learn where it is, and a thread runs to answer jobs. It is only ever
 * imported dynamically, so that a bundler gives it a file of its own.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { extractText } from './extract-text.ts'
import type { PdfJob } from './pdf-job.ts'

export const PDF_WORKER_URL = import.meta.url
export const PDF_WORKER_MARK = 'sluice-pdf-worker'

if (!isMainThread && parentPort && workerData === PDF_WORKER_MARK) {
  const port = parentPort
  const { getDocumentProxy } = await import('unpdf')
  port.on('message', async (job: PdfJob) => port.postMessage(await extractText(job, getDocumentProxy)))
}
