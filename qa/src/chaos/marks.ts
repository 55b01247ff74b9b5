/** Marks identify a message in its own text, in requests to the model and in replies. */
import { type Message, type Part, PROMPT_PART } from './history.ts'

const MARK = /chaos-\d{6}/
const MARKS = /chaos-\d{6}/g
const PART = /to (chaos-\d{6}) part (\d+)/g
/** Below the shortest limit of a platform, so that each paragraph of a long reply is in one message. Most platforms need several messages. */
const PARAGRAPH_CHARS = 1900

export const markOf = (number: number): string => `chaos-${String(number).padStart(6, '0')}`

/** The file in the workspace to which approved calls add a line. */
export const LINES_FILE = 'effects.log'

/** The command of an approved call. The prompt shows it, so the mark also identifies the prompt. */
export const lineCommand = (mark: string): string => `echo to ${mark} part ${PROMPT_PART} | tee -a ${LINES_FILE}`

/**
 * The text of a message. It contains letters beyond ASCII, because signatures are over bytes. An approval is only a keyword.
 * A rejection gives a reason with a mark, so that it can be recognised if it reaches the agent as a message.
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

/** Every mark in the text once, in order. */
export const marksIn = (text: string): string[] => [...new Set(text.match(MARKS))]

export const partsIn = (text: string): Part[] => [...text.matchAll(PART)].map(([, mark = '', part]) => ({ mark, part: Number(part) }))
