/** The self-check of `sluice doctor`: reads a small PDF on this machine. */
import { type Clock, errorText, type Finding } from '@sluice/sdk'
import type { PdfReader } from './pdf-reader.ts'

const PROOF = 'Sluice reads this'

/** One page that shows `PROOF`. The cross-reference table is missing; the library rebuilds it. */
const TINY_PDF = `%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 200 50] /Contents 4 0 R /Resources <</Font <</F1 5 0 R>>>>>> endobj
4 0 obj <</Length ${PROOF.length + 31}>> stream
BT /F1 12 Tf 10 20 Td (${PROOF}) Tj ET
endstream endobj
5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> endobj
trailer <</Root 1 0 R /Size 6>>
%%EOF
`

/** Returns one finding: how long the read took, or why it failed. Never rejects. */
export async function checkReading(reader: PdfReader, clock: Clock, signal: AbortSignal): Promise<Finding[]> {
  const startedMs = clock.monotonicMs()
  try {
    const { texts } = await reader.read(Buffer.from(TINY_PDF), { ranges: [], charsMax: 1000, signal })
    const found = texts[0]?.text ?? ''
    if (found !== PROOF) return [failure(`A PDF that says '${PROOF}' was read as '${found}'`)]
    return [
      { status: 'ok', detail: `a PDF was read in ${Math.round(clock.monotonicMs() - startedMs)} ms, including the start of the worker` },
    ]
  } catch (error) {
    return [failure(errorText(error))]
  }
}

const failure = (detail: string): Finding => ({ status: 'fail', detail, fix: 'build or install Sluice again; the log has the cause' })
