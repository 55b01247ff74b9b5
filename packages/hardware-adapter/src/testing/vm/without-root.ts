/** Runs work as a user without privileges, to see how a denied permission is reported. */
import { errorText } from '@sluice/sdk'

/** The id of the user `nobody`. */
const UNPRIVILEGED_UID = 65_534

/** Returns the text of the error, or the result when the work succeeds. */
export async function withoutRoot(work: () => Promise<string>): Promise<string> {
  process.seteuid?.(UNPRIVILEGED_UID)
  try {
    return await work()
  } catch (error) {
    return errorText(error)
  } finally {
    process.seteuid?.(0)
  }
}
