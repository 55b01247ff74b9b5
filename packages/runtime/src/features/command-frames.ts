/** The lines between a caller and a command of a feature that runs for it: output, questions, and how the command ended. */
import { ERRORS, type ErrorCode } from '@sluice/sdk'
import * as v from 'valibot'

/** The schema of one line; the description says when it is sent. */
const frame = <const Type extends string, const Entries extends v.ObjectEntries>(type: Type, description: string, entries: Entries) =>
  v.pipe(v.object({ type: v.literal(type), ...entries }), v.readonly(), v.description(description))

/** Lines that the command sends. The last one is `exit` or `error`. */
export const commandFrameSchema = v.variant('type', [
  frame('started', 'First: the id under which the caller answers questions and aborts', { id: v.string() }),
  frame('print', 'A line of standard output', { line: v.string() }),
  frame('warn', 'A line of standard error', { line: v.string() }),
  frame('question', 'The command waits for an answer', { text: v.string() }),
  frame('exit', 'The command has ended', { code: v.number() }),
  frame('error', 'The command has failed', {
    code: v.picklist(Object.keys(ERRORS) as ErrorCode[]),
    message: v.string(),
    fields: v.pipe(v.record(v.string(), v.unknown()), v.description('Further members of the error')),
  }),
])

export type CommandFrame = v.InferOutput<typeof commandFrameSchema>

/** The frames from the caller to a running command. */
export const commandInputSchema = v.variant('type', [
  frame('answer', 'Answers the oldest question that is open', {
    text: v.pipe(v.nullable(v.string()), v.description('The line that was typed; null after the end of the input')),
  }),
  frame('abort', 'Aborts the command, which then ends by itself', {}),
])

export type CommandInput = v.InferOutput<typeof commandInputSchema>
