/** `file_list`: what is in one folder. */
import { defineTool, type Host, type Tool, type WorkspaceEntry, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { pathInput, printable } from './path.ts'

export const fileList = (host: Pick<Host, 'workspace'>): Tool =>
  defineTool({
    name: 'file_list',
    description: 'Lists one folder of the workspace by name: files with their size in bytes, folders with a slash at the end.',
    risk: 'read',
    input: v.object({
      path: v.optional(pathInput('The folder, relative to the workspace; without it, the workspace itself'), '.'),
      limit: v.optional(v.pipe(whole(1, 1000), v.description('How many entries to return at most')), 200),
    }),
    async run({ path, limit }) {
      const { entries, more } = await host.workspace.list(path, { limit })
      if (entries.length === 0) return '[The folder is empty]'
      const lines = entries.map(entryText)
      if (more) lines.push(`[More than these ${entries.length} entries; a larger limit shows more]`)
      return lines.join('\n')
    },
  })

function entryText({ name, kind, bytes }: WorkspaceEntry): string {
  const shown = printable(name)
  if (kind === 'file') return `${shown}  ${bytes} bytes`
  if (kind === 'folder') return `${shown}/`
  return kind === 'link' ? `${shown}  (link, not followed)` : `${shown}  (not a plain file)`
}
