/** How a message is recognised in everything that comes of it: its own text, the model's requests, the replies. */
import { type Message, type Part, PROMPT_PART } from './history.ts'

const MARK = /chaos-\d{6}/
const PART = /to (chaos-\d{6}) part (\d+)/g
/** Over half of what the platforms with short messages take, so that each paragraph of a long reply is a message there. */
const PARAGRAPH_CHARS = 2600

export const markOf = (number: number): string => `chaos-${String(number).padStart(6, '0')}`

/** The file in the workspace that approved calls leave a line in. */
export const LINES_FILE = 'effects.log'

/** What an approved call writes; the prompt shows it, and is recognised by it. */
export const lineCommand = (mark: string): string => `echo to ${mark} part ${PROMPT_PART} | tee -a ${LINES_FILE}`

/**
 * Letters beyond ASCII, since signatures are over bytes. An approval is a keyword and nothing else. A rejection gives a
 * reason, and so has a mark if it is taken for a message to the agent.
 */
export function textOf({ mark, answers }: Pick<Message, 'mark' | 'answers'>): string {
  if (!answers) return `Grüße, ${mark} 🌊`
  return answers.approve ? 'yes' : `reject ${mark}`
}

export const replyOf = ({ mark, parts }: Pick<Message, 'mark' | 'parts'>): string =>
  Array.from({ length: Math.max(parts, 1) }, (_, index) => {
    const head = `to ${mark} part ${index + 1}`
    return parts > 1 ? head.padEnd(PARAGRAPH_CHARS, ' and on') : head
  }).join('\n\n')

export const markIn = (text: string): string | undefined => MARK.exec(text)?.[0]

export const partsIn = (text: string): Part[] => [...text.matchAll(PART)].map(([, mark = '', part]) => ({ mark, part: Number(part) }))
