/** Re-exports the one function of the library that is used, so that a bundle leaves out the others. */
export { parsePhoneNumberFromString } from 'libphonenumber-js/core'
