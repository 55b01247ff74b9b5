/** `datasheet`: finds, fetches, lists and reads the data sheets of parts. */
import { defineTool, type Host, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Adapters } from './adapters.ts'

const input = v.object({
  action: v.pipe(
    v.picklist(['search', 'download', 'list', 'read']),
    v.description('`search`: where to look; `download`: a PDF from a URL; `list`: those kept; `read`: the text of one'),
  ),
  device_name: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('The part, such as BME280; not needed to list')),
  ),
  url: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(2048), v.description('Of download: the whole URL of the PDF'))),
  pages: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('Of read: which pages, such as 1-3,7; default: all')),
  ),
})

export type DatasheetInput = v.InferOutput<typeof input>
export type DatasheetHost = Pick<Host, 'publicFetch' | 'clock' | 'service' | 'dataDir'>

export const datasheet = (host: DatasheetHost, adapters: Adapters): Tool =>
  defineTool({
    name: 'datasheet',
    description: 'Finds, downloads, lists and reads data sheets of electronic parts. Those downloaded are kept as PDF files.',
    // The URL is the model's own idea: asking for it tells somebody outside.
    risk: ({ action }) => (action === 'download' ? 'execute' : 'read'),
    input,
    available: () => adapters.present().length > 0,
    async run(asked, { signal }) {
      const { actOnDatasheets } = await import('./when-needed.ts')
      return actOnDatasheets(host, asked, signal)
    },
  })
