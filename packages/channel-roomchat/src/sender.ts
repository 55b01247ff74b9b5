/** Who writes: users by their id alone, everybody else with the kind in front, such as `guests/…`. A user id has no slash. */
export const normaliseSender = (actor: string): string => actor.replace(/^(?:users\/|\s)+/, '').trimEnd()

/** Bots are `bots/…`, and nobody answers a bot. */
export const isBot = (actor: string): boolean => /^(?:bots|application)\//i.test(actor)
