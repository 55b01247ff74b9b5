/** The tool that places calls. */
import { parsePhoneNumber } from '@sluice/kit/phone-numbers'
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Calls } from './calls.ts'

const TEXT_CHARS_MAX = 2000

const input = v.object({
  to: v.pipe(v.string(), v.maxLength(40), v.description('The telephone number with its country code, such as +15550002222')),
  message: v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX), v.description('What the person hears first')),
})

/** Places calls. */
export type Dialer = Pick<Calls, 'checkDial' | 'dial'>

const refuse = async (): Promise<never> => {
  throw new AppError('unavailable', '[channels_config.voice_call] is not enabled')
}

/** Replaces the calls while the channel is disabled. */
export const NO_CALLS: Dialer = { checkDial: refuse, dial: refuse }

/** `asks`: a person approves each call. */
export const voiceCallTool = (calls: Dialer, asks: boolean): Tool =>
  defineTool({
    name: 'voice_call',
    description: 'Calls a telephone number and speaks a message. What the person says then arrives as messages of that number.',
    input,
    risk: 'execute',
    decider: 'asker',
    egress: true,
    untrusted: false,
    ...(asks && { alwaysAsks: true as const }),
    precheck: async ({ to }) => calls.checkDial(await numberOf(to)),
    async run({ to, message }, { signal }) {
      const number = await numberOf(to)
      await calls.dial(number, message, signal)
      return `${number} is being called. The call begins with the message once somebody answers.`
    },
  })

async function numberOf(text: string): Promise<string> {
  const number = await parsePhoneNumber(text)
  if (number === undefined) throw new AppError('invalid_request', `'${text}' is not a telephone number with its country code`)
  return number
}
