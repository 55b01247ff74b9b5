/**
 * Masks secrets in text from outside before a model, listener, log or store gets it. It recognizes the configured values and the
 * usual forms of credentials, so it can miss others. Every pattern has bounded repeats, so that hostile text costs linear time.
 */
import { type Secret, withoutSecrets } from '@sluice/sdk'

export type Scrub = (text: string) => string

const REDACTED = '[redacted]'

const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g
const TOKEN =
  /\b(?:sk-[\w-]{16,512}|gh[pousr]_\w{20,512}|github_pat_\w{20,512}|glpat-[\w-]{16,512}|xox[abeoprs]-[\w-]{10,512}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,512}|eyJ[\w-]{8,300}\.[\w-]{8,4096}\.[\w-]{8,4096})/g
const AUTHORIZATION = /\b(bearer|basic)(\s{1,4})[\w.~+/=-]{16,4096}/gi
const USER_INFO = /(\/\/[^\s/@:]{1,100}:)[^\s/@]{3,200}@/g
const NAMED =
  /((?:api|access|private|secret|signing|encryption)[_-]?key|secret|token|passwd|password|passphrase|credentials?)([\w-]{0,40}["']?\s{0,4}[:=]{1,2}\s{0,4})("[^"\n]{8,512}"|'[^'\n]{8,512}'|[\w+/=.~!@#%^*-]{8,512})(?=([([]?))/gi

/** Names of variables and types, and numbers, which are source code and not credentials. */
const IDENTIFIER = /^(?:[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)+|[A-Za-z]+(?:_[A-Za-z]+)+|[a-z]\w*(?:\.[A-Za-z_]\w*)+|\d+)[.,;]?$/

function redactNamed(whole: string, name: string, between: string, value: string, call: string): string {
  if (call !== '' || IDENTIFIER.test(value)) return whole
  const quote = /^["']/.exec(value)?.[0] ?? ''
  return `${name}${between}${quote}${REDACTED}${quote}`
}

/** `secrets` returns the values in use. */
export function createScrub(secrets: () => readonly Secret[]): Scrub {
  return (text) => {
    // Known values come first, because a pattern could match a part of one.
    const known = withoutSecrets(
      text,
      secrets().map((secret) => secret.reveal()),
      REDACTED,
    )
    return known
      .replace(PRIVATE_KEY, REDACTED)
      .replace(TOKEN, REDACTED)
      .replace(AUTHORIZATION, `$1$2${REDACTED}`)
      .replace(USER_INFO, `$1${REDACTED}@`)
      .replace(NAMED, redactNamed)
  }
}
