/** What is refused to somebody who is not root. */
import { errorText } from '@sluice/sdk'

const NOBODY = 65_534

/** The sentence of the error; the result where there is none. */
export async function asNobody(work: () => Promise<string>): Promise<string> {
  process.seteuid?.(NOBODY)
  try {
    return await work()
  } catch (error) {
    return errorText(error)
  } finally {
    process.seteuid?.(0)
  }
}
