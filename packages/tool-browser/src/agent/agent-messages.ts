/** Translates actions to arguments of the `agent-browser` command, and its output to text. */
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type SpawnResult } from '@sluice/sdk'
import type { BrowserAction } from '../actions.ts'

const WAIT_MS = 250
const ERROR_CHARS_MAX = 300

/**
 * Returns the arguments for an action. The command writes a screenshot to `imagePath`. Throws `invalid_request` for a selector
 * or text that the command would parse as an option.
 */
export function toArguments(action: BrowserAction, imagePath: string): readonly string[] {
  switch (action.action) {
    case 'open':
      return ['open', action.url]
    case 'snapshot':
      return [
        'snapshot',
        ...(action.interactive_only ? ['-i'] : []),
        ...(action.compact ? ['-c'] : []),
        ...(action.depth === undefined ? [] : ['-d', String(action.depth)]),
      ]
    case 'click':
    case 'hover':
      return [action.action, noOption(action.selector)]
    case 'get_text':
      return ['get', 'text', noOption(action.selector)]
    case 'is_visible':
      return ['is', 'visible', noOption(action.selector)]
    case 'fill':
      return ['fill', noOption(action.selector), noOption(action.value)]
    case 'type':
      return ['type', noOption(action.selector), noOption(action.text)]
    case 'get_title':
      return ['get', 'title']
    case 'get_url':
      return ['get', 'url']
    case 'close':
      return ['close']
    case 'screenshot':
      return ['screenshot', imagePath, ...(action.full_page ? ['--full'] : [])]
    case 'wait':
      if (action.selector !== undefined) return ['wait', noOption(action.selector)]
      return action.text === undefined ? ['wait', String(action.ms ?? WAIT_MS)] : ['wait', '--text', noOption(action.text)]
    case 'press':
      return ['press', noOption(action.key)]
    case 'scroll':
      return ['scroll', action.direction, String(action.pixels)]
    case 'find':
      return [
        ...['find', action.by, noOption(action.value), action.find_action],
        ...(action.find_action === 'fill' ? [noOption(action.fill_value ?? '')] : []),
      ]
  }
}

function noOption(text: string): string {
  if (/^-{1,2}[A-Za-z]/.test(text)) {
    throw new AppError(
      'invalid_request',
      "agent_browser accepts no selector or text that looks like a command-line option; use backend 'native'",
    )
  }
  return text
}

/** The member of `data` that answers an action. */
const ANSWER_MEMBER: Readonly<Partial<Record<BrowserAction['action'], string>>> = {
  snapshot: 'snapshot',
  get_text: 'text',
  is_visible: 'visible',
  get_title: 'title',
  get_url: 'url',
}

/** Returns the answer to an action. Throws `upstream` with the command's own message when it failed. */
export function readReply(name: BrowserAction['action'], { exitCode, stdout, stderr }: SpawnResult): string {
  const parsed = parsedOrUndefined(stdout.trim())
  const reply = members(parsed)
  if (exitCode !== 0 || reply.success === false) {
    const reason = text(reply.error) || text(members(reply.error).message) || stderr.trim() || stdout.trim() || `exit code ${exitCode}`
    throw new AppError('upstream', `agent-browser: ${reason.slice(0, ERROR_CHARS_MAX)}`)
  }
  // Output that is not JSON is the answer itself.
  if (typeof parsed !== 'object' || parsed === null) return stdout.trim() || 'Done.'
  const data = 'data' in reply ? reply.data : parsed
  const member = ANSWER_MEMBER[name]
  const answer = member === undefined ? undefined : members(data)[member]
  if (answer !== undefined) return String(answer)
  if (typeof data === 'string') return data || 'Done.'
  return name === 'open' ? describeOpened(members(data)) : 'Done.'
}

const describeOpened = ({ title, url }: Readonly<Record<string, unknown>>): string =>
  ['Opened.', `Page: ${text(title) || '(no title)'}`, ...(text(url) === '' ? [] : [`URL: ${text(url)}`])].join('\n')
