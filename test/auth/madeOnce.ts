/**
 * An ES256 and an RS256 signature over the sound claims. ECDSA signatures differ each time and RSA
 * keys do not come from a label, so both were made once, by keys that have been thrown away: to
 * change the sound claims or these headers is to make them anew.
 */

export const madeOnce = {
  ES256: {
    header: { alg: 'ES256', typ: 'at+jwt', kid: 'ec' },
    publicJwk: {
      kty: 'EC',
      crv: 'P-256',
      x: 'IGhqzOYoPbZf7EqpMxPDfmq5vc6CMB53EcVY7DSMYq0',
      y: 'jqvfwGSReqHArhNRGZ_l-g8a8ueyEcuUDWVdVrVitxk',
    },
    signature:
      'MVGEmZdWNQt1ET1LmJg7K82lhkch76tojLO8YHwr-IvoDJfVOfPCqEYnGA0AF6RXRSfpFuDr6OkYVGwjir4AcQ',
  },
  RS256: {
    header: { alg: 'RS256', typ: 'at+jwt', kid: 'rsa' },
    publicJwk: {
      kty: 'RSA',
      e: 'AQAB',
      n:
        '0iOc7OAAXv06uapRYtxni9gNTnak0eFfW2yduaDT8gT0GkS9atXXRl-DbPMt6S25yhkncFVwpY-gcYy2PrgZqSLA' +
        'IFS6-dDf2nDHzw00TQic0NVmfqV26o0M1KVfyf8kN38sPwDMd3JlOepb1XiwNVkj-yQG5KKtdiuv_BLyV2oLDYXd' +
        'jfAYCH9yeK60br87KbpsR_Y6PdyLs973b8LE6bgO0YIA92LViEATBV7fCf0ER2844a_wIge8WSo4AAvuV52RqcFx' +
        'j56gMZY7JSxadlKVi_SVs7azyLqQVrqvusLBsjAiIUA9K2WCaR8B3kUsKXMxBTwsv7wY12KhLroluw',
    },
    signature:
      'mBs65ispolOIU89z9YR8o_v4OtaFVX5tOXcktI_8_8gcRxVrVlbtr0T2n3w8Z6STDRUNpVLj_SqeqBytZb9qNCaO' +
      'CBsyZhz9Y2IiAAh9oEZ6uyydg1H3L0HtjpJ17rI_nNF8db3bbv8m8tHN44T8ch4oaR2u8xGoup0x2VuDQ5rzk6bf' +
      'NGP1AHsK_akTaeRypkON1uKT721j0QSNGaMh1y_jhtXvm1eJeBOQf2XEpdMp4-uPMYagbHVQfEgdlt4X5eTxiu2G' +
      'PzEsR8AZWe9BeIrIObAbXbXmSpn_-3ZEbQjXIdGpANnAuOV8cB4989VA3cgB-bBmWZrPnhf83-l3zw',
  },
} as const;
