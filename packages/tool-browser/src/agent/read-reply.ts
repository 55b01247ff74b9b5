/** What the agent-browser command answered, as text. */

import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type SpawnResult } from '@sluice/sdk'
import type { BrowserAction } from '../actions.ts'

const ERROR_CHARS_MAX = 300

/** Where the answer to a question stands in `data`. */
const ANSWERS: Readonly<Partial<Record<BrowserAction['action'], string>>> = {
  snapshot: 'snapshot',
  get_text: 'text',
  is_visible: 'visible',
  get_title: 'title',
  get_url: 'url',
}

/** Throws `upstream` for a failure, in the command's own words. */
export function readReply(
  name: BrowserAction['action'],
  { exitCode, stdout, stderr }: Pick<SpawnResult, 'exitCode' | 'stdout' | 'stderr'>,
): string {
  const parsed = parsedOrUndefined(stdout.trim())
  const reply = members(parsed)
  if (exitCode !== 0 || reply.success === false) {
    const why = text(reply.error) || text(members(reply.error).message) || stderr.trim() || stdout.trim() || `exit code ${exitCode}`
    throw new AppError('upstream', `agent-browser: ${why.slice(0, ERROR_CHARS_MAX)}`)
  }
  // Without JSON, what it printed is the answer.
  if (typeof parsed !== 'object' || parsed === null) return stdout.trim() || 'Done.'
  const data = 'data' in reply ? reply.data : parsed
  const key = ANSWERS[name]
  const answer = key === undefined ? undefined : members(data)[key]
  if (answer !== undefined) return String(answer)
  if (typeof data === 'string') return data || 'Done.'
  return name === 'open' ? opened(members(data)) : 'Done.'
}

const opened = ({ title, url }: Readonly<Record<string, unknown>>): string =>
  ['Opened.', `Page: ${text(title) || '(no title)'}`, ...(text(url) === '' ? [] : [`URL: ${text(url)}`])].join('\n')
