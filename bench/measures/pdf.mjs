// The text of a PDF as the daemon reads it, beside what the library takes when it is called and nothing else is done.
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
