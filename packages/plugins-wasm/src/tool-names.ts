/** Names of tools that are taken: a plugin never stands in for a tool of Sluice's own, in this build or another. */
import { AppError, ROWS } from '@sluice/sdk'

/** Throws `conflict`. What features of an embedder's own bring is looked at where all tools come together. */
export function checkToolName(name: string): void {
  const owner = ROWS.find(([, row]) => row.tools?.includes(name))?.[0]
  if (owner) throw new AppError('conflict', `'${name}' is the name of a tool of ${owner}`)
}
