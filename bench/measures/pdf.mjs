// The time to read the text of a PDF as the daemon does, compared with a bare call of the library.
import { runLoad } from '../lib/sluice.mjs'

export async function measurePdf({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 1 }, async () => {
    const { ours, bare, firstMs, longestBlockMs } = await runLoad({ scratch, name: 'pdf', job: { pages: 100, slices: scale(20) } })
    return {
      'pdf-text': { ours, bare },
      'pdf-first': { ours: firstMs },
      'pdf-block': { ours: longestBlockMs },
    }
  })
}
