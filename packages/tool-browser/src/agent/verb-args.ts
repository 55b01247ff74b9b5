/** An action as the words of the agent-browser command. */
import { AppError } from '@sluice/sdk'
import type { BrowserAction } from '../actions.ts'

const WAIT_MS = 250

/** `imagePath` is where a screenshot shall be put. Throws `invalid_request` for a text the command would take for an option. */
export function verbArgs(action: BrowserAction, imagePath: string): readonly string[] {
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
      return [action.action, plain(action.selector)]
    case 'get_text':
      return ['get', 'text', plain(action.selector)]
    case 'is_visible':
      return ['is', 'visible', plain(action.selector)]
    case 'fill':
      return ['fill', plain(action.selector), plain(action.value)]
    case 'type':
      return ['type', plain(action.selector), plain(action.text)]
    case 'get_title':
      return ['get', 'title']
    case 'get_url':
      return ['get', 'url']
    case 'close':
      return ['close']
    case 'screenshot':
      return ['screenshot', imagePath, ...(action.full_page ? ['--full'] : [])]
    case 'wait':
      if (action.selector !== undefined) return ['wait', plain(action.selector)]
      return action.text === undefined ? ['wait', String(action.ms ?? WAIT_MS)] : ['wait', '--text', plain(action.text)]
    case 'press':
      return ['press', plain(action.key)]
    case 'scroll':
      return ['scroll', action.direction, String(action.pixels)]
    case 'find':
      return [
        ...['find', action.by, plain(action.value), action.find_action],
        ...(action.find_action === 'fill' ? [plain(action.fill_value ?? '')] : []),
      ]
  }
}

function plain(text: string): string {
  if (/^-{1,2}[A-Za-z]/.test(text)) {
    throw new AppError('invalid_request', "agent_browser takes no selector or text that begins like an option; use backend 'native'")
  }
  return text
}
