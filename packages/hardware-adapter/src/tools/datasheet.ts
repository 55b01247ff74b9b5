/** The tool `datasheet`: finds, downloads, lists and reads the data sheets of parts. */
import { defineTool, type Host, type Tool } from '@sluice/sdk'
import type { PresentAdapters } from '../present-adapters.ts'
import { input } from './datasheet-input.ts'

export const datasheet = (host: Host, adapters: PresentAdapters): Tool =>
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
