/** Reads the text of PDF files in a worker with limits: the tool `pdf_read`, and a service for other features. See `docs/pdf.md`. */
import { defineFeature } from '@sluice/sdk'
import { checkReading } from './check-reading.ts'
import { pdfRead } from './pdf-read.ts'
import { PdfReader } from './pdf-reader.ts'

export default defineFeature({
  id: 'tool-pdf',
  build({ clock, log }) {
    const reader = new PdfReader(clock, log)
    return {
      tools: [pdfRead(reader)],
      services: { pdfText: (pdf, options) => reader.readTexts(pdf, options) },
      check: (signal) => checkReading(reader, clock, signal),
      close: () => reader.close(),
    }
  },
})
