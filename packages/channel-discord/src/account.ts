/** Whose token it is: the bot's user id stands in front of it, so that it is known without asking. */
import { isSnowflake } from './snowflake.ts'

/** `bot` for a token of another form. */
export function accountOf(token: string): string {
  const id = Buffer.from(token.split('.')[0] ?? '', 'base64url').toString('latin1')
  return isSnowflake(id) ? id : 'bot'
}
