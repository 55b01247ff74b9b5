/** Shows MCP servers that are programs of a machine. */
import type { Status } from '@sluice/http/answers'

/** Returns text such as `files (2 running), notes (idle)`. */
export const shownPrograms = (programs: Status['programs']): string =>
  programs.map(({ server, processes }) => `${server} (${processes === 0 ? 'idle' : `${processes} running`})`).join(', ')
