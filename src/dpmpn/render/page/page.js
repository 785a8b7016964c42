
// ---- The page of one explanation
makePlayer(document, JSON.parse(document.getElementById("data").textContent));
