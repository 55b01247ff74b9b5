/** PDF files as text (§2.7 `rag-pdf`): a tool for the model and a service for other features, in a worker with limits. */
import { defineFeature } from '@sluice/sdk'
import { checkReading } from './check-reading.ts'
import { pdfRead } from './pdf-read.ts'
import { PdfReader } from './pdf-reader.ts'
import { pdfText } from './pdf-text.ts'

export default defineFeature({
  id: 'tool-pdf',
  build(host) {
    const reader = new PdfReader(host)
    return {
      tools: [pdfRead(host, reader)],
      services: { pdfText: pdfText(reader) },
      check: (signal) => checkReading(reader, host.clock, signal),
      close: () => reader.close(),
    }
  },
})
