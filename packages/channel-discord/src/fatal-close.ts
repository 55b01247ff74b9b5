/** Why the gateway does not want us back, for operators: until somebody changes something, trying again changes nothing. */

const PORTAL = 'https://discord.com/developers/applications'

export const BAD_TOKEN = 'The platform refuses bot_token: copy the token of the bot anew from the developer portal'

const REASONS: Readonly<Record<number, string>> = {
  4004: BAD_TOKEN,
  4010: 'The platform refuses the connection (4010, invalid shard)',
  4011: 'The bot is on too many servers for one connection (4011)',
  4012: 'The platform no longer speaks version 10 of its gateway (4012)',
  4013: 'The platform does not know the intents that are asked for (4013)',
  4014: `The platform refuses the intents (4014): switch on "Message Content Intent" under Bot at ${PORTAL}`,
}

/** Undefined for a code after which a new connection may hold. */
export const fatalClose = (code: number): string | undefined => REASONS[code]
