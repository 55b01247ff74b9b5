/** The one door to the library that speaks to Chromium; it stays outside the bundle and is loaded with the first page. */

import { installPackage } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

export const loadPlaywright = () =>
  import('playwright-core').catch((cause: unknown) => {
    throw new AppError('unavailable', `the package playwright-core is not installed; ${installPackage('playwright-core')}`, { cause })
  })
