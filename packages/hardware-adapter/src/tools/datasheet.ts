/** The tool `datasheet`: finds, downloads, lists and reads the data sheets of parts. */
import { defineTool, type Host, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Adapters } from '../adapters.ts'

const input = v.object({
  action: v.pipe(
    v.picklist(['search', 'download', 'list', 'read']),
    v.description('`search`: where to look; `download`: a PDF from a URL; `list`: the stored data sheets; `read`: the text of one'),
  ),
  device_name: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('The part, such as BME280; not needed to list')),
  ),
  url: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(2048), v.description('For download: the full URL of the PDF'))),
  pages: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('For read: the pages, such as 1-3,7; default: all')),
  ),
})

export type DatasheetInput = v.InferOutput<typeof input>

export const datasheet = (host: Host, adapters: Adapters): Tool =>
  defineTool({
    name: 'datasheet',
    description: 'Finds, downloads, lists and reads data sheets of electronic parts. Downloaded data sheets are stored as PDF files.',
    // The model chooses the URL, so a download can reveal something to an outside server.
    risk: ({ action }) => (action === 'download' ? 'execute' : 'read'),
    decider: 'asker',
    egress: ({ action }) => action === 'search' || action === 'download',
    untrusted: ({ action }) => (action === 'read' ? 'data sheet' : undefined),
    input,
    available: () => adapters.present().length > 0,
    async run(call, { signal }) {
      const { runDatasheetAction } = await import('../lazy.ts')
      return runDatasheetAction(host, call, signal)
    },
  })
