/** `file_write`: puts a text into a file, replacing what was there. */
import { defineTool, type Host, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { pathInput } from './path.ts'

const CONTENT_CHARS_MAX = 4 * 1024 * 1024

export const fileWrite = (host: Pick<Host, 'workspace'>): Tool =>
  defineTool({
    name: 'file_write',
    description: 'Writes a text file in the workspace, replacing the whole file. Missing folders are made.',
    risk: 'write',
    input: v.object({
      path: pathInput('The file, relative to the workspace'),
      content: v.pipe(v.string(), v.maxLength(CONTENT_CHARS_MAX), v.description('The whole new content')),
    }),
    async run({ path, content }) {
      const bytes = new TextEncoder().encode(content)
      await host.workspace.write(path, bytes)
      return `Wrote ${bytes.length} bytes to ${path}`
    },
  })
