/** The account of ours, known before anything is asked: the app's id, which stands in its app-level token. */
import type { Secret } from '@sluice/sdk'

/** For tokens of another form. */
const UNKNOWN = 'app'

/** From `xapp-1-A0123-…`. */
export const accountOf = (appToken: Secret): string => /^xapp-\d+-([A-Z0-9]+)-/.exec(appToken.reveal().trim())?.[1] ?? UNKNOWN
